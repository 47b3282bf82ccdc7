-- A shop for recordings: eleven tables, snake case, whole numbers as keys, money as numeric(10,2), a table of links, a
-- chain of superiors, and people of two kinds that share the same columns of addresses.
CREATE TABLE band (band_id int PRIMARY KEY, name varchar(120));
CREATE TABLE record (record_id int PRIMARY KEY, title varchar(160) NOT NULL, band_id int NOT NULL REFERENCES band);
CREATE TABLE style (style_id int PRIMARY KEY, name varchar(120));
CREATE TABLE carrier (carrier_id int PRIMARY KEY, name varchar(120));
CREATE TABLE song (song_id int PRIMARY KEY, name varchar(200) NOT NULL, record_id int REFERENCES record, carrier_id int NOT NULL REFERENCES carrier, style_id int REFERENCES style, writer varchar(220), millis int NOT NULL, size_bytes int, list_price numeric(10,2) NOT NULL);
CREATE TABLE mixtape (mixtape_id int PRIMARY KEY, name varchar(120));
CREATE TABLE mixtape_song (mixtape_id int NOT NULL REFERENCES mixtape, song_id int NOT NULL REFERENCES song, PRIMARY KEY (mixtape_id, song_id));
CREATE TABLE employee (employee_id int PRIMARY KEY, last_name varchar(20) NOT NULL, first_name varchar(20) NOT NULL, position varchar(30), reports_to int REFERENCES employee, birth_date timestamp, hired_on timestamp, street varchar(70), town varchar(40), region varchar(40), nation varchar(40), postal_code varchar(10), phone_no varchar(24), fax_no varchar(24), email varchar(60));
CREATE TABLE customer (customer_id int PRIMARY KEY, first_name varchar(40) NOT NULL, last_name varchar(20) NOT NULL, employer varchar(80), street varchar(70), town varchar(40), region varchar(40), nation varchar(40), postal_code varchar(10), phone_no varchar(24), fax_no varchar(24), email varchar(60) NOT NULL, helper_id int REFERENCES employee);
CREATE TABLE invoice (invoice_id int PRIMARY KEY, customer_id int NOT NULL REFERENCES customer, issued timestamp NOT NULL, bill_street varchar(70), bill_town varchar(40), bill_region varchar(40), bill_nation varchar(40), bill_postal_code varchar(10), total numeric(10,2) NOT NULL);
CREATE TABLE invoice_item (invoice_item_id int PRIMARY KEY, invoice_id int NOT NULL REFERENCES invoice, song_id int NOT NULL REFERENCES song, price numeric(10,2) NOT NULL, quantity int NOT NULL);
CREATE INDEX ON song (record_id);
CREATE INDEX ON song (style_id);
CREATE INDEX ON invoice (customer_id);
CREATE INDEX ON invoice_item (invoice_id);
