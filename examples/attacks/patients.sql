-- A ward of 128 beds, one patient in each. Who lies where is known to everybody; who is ill is the secret.
CREATE TABLE patients (patient_id integer PRIMARY KEY, bed integer NOT NULL UNIQUE, ill boolean NOT NULL);
INSERT INTO patients SELECT 1000 + i, i, random() < 0.5 FROM generate_series(1, 128) AS beds(i);
