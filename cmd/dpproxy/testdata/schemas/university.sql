-- Names in capitals and camel case, a second schema's worth of habits: students, their enrolments, grades, mentors among themselves.
CREATE TABLE "Department" ("DeptCode" varchar(4) PRIMARY KEY, "DeptName" varchar(60));
CREATE TABLE "Student" ("StudentId" integer PRIMARY KEY, "FirstName" text, "LastName" text, "DateOfBirth" date, "DeptCode" varchar(4) REFERENCES "Department", "MentorId" integer REFERENCES "Student", "YearOfStudy" smallint);
CREATE TABLE "Lecturer" ("LecturerId" integer PRIMARY KEY, "FirstName" text, "LastName" text, "DeptCode" varchar(4) REFERENCES "Department");
CREATE TABLE "Course" ("CourseId" integer PRIMARY KEY, "Title" text, "Credits" smallint CHECK ("Credits" BETWEEN 1 AND 30), "LecturerId" integer REFERENCES "Lecturer", "DeptCode" varchar(4) REFERENCES "Department");
CREATE TABLE "Enrolment" ("StudentId" integer REFERENCES "Student", "CourseId" integer REFERENCES "Course", "Semester" smallint, "Grade" numeric(3,1), PRIMARY KEY ("StudentId", "CourseId", "Semester"));
CREATE TABLE "Attendance" ("StudentId" integer NOT NULL, "CourseId" integer NOT NULL, "Semester" smallint NOT NULL, "Day" date, "Present" boolean, FOREIGN KEY ("StudentId", "CourseId", "Semester") REFERENCES "Enrolment");
CREATE TABLE "Fees" ("FeeId" bigint PRIMARY KEY, "PaidBy" integer NOT NULL UNIQUE REFERENCES "Student", "Amount" numeric(8,2));
