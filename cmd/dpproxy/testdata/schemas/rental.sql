-- A film rental of thirteen tables: lookups of lookups, addresses that many kinds of rows name, two tables of people.
CREATE TYPE rating AS ENUM ('G', 'PG', 'R');
CREATE DOMAIN year AS integer CHECK (VALUE >= 1901 AND VALUE <= 2155);
CREATE TABLE country (country_id serial PRIMARY KEY, country text NOT NULL, last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE city (city_id serial PRIMARY KEY, city text NOT NULL, country_id integer NOT NULL REFERENCES country, last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE address (address_id serial PRIMARY KEY, address text NOT NULL, district text, city_id integer NOT NULL REFERENCES city, postal_code text, phone text, last_update timestamptz);
CREATE TABLE store (store_id serial PRIMARY KEY, manager_staff_id integer NOT NULL, address_id integer NOT NULL REFERENCES address, last_update timestamptz);
CREATE TABLE staff (staff_id serial PRIMARY KEY, first_name text, last_name text, address_id integer REFERENCES address, email text, store_id integer REFERENCES store, active boolean, username text, password text, picture bytea);
ALTER TABLE store ADD FOREIGN KEY (manager_staff_id) REFERENCES staff;
CREATE TABLE customer (customer_id serial PRIMARY KEY, store_id integer NOT NULL REFERENCES store, first_name text, last_name text, email text, address_id integer REFERENCES address,
  activebool boolean NOT NULL DEFAULT true, create_date date NOT NULL DEFAULT CURRENT_DATE, active integer CHECK (active IN (0, 1)));
CREATE TABLE language (language_id serial PRIMARY KEY, name character(20) NOT NULL, last_update timestamptz);
CREATE TABLE category (category_id serial PRIMARY KEY, name text NOT NULL);
CREATE TABLE film (film_id serial PRIMARY KEY, title text NOT NULL, description text, release_year year, language_id integer REFERENCES language, rental_rate numeric(4,2), length smallint, rating rating, special_features text[]);
CREATE TABLE film_category (film_id integer REFERENCES film, category_id integer REFERENCES category, PRIMARY KEY (film_id, category_id));
CREATE TABLE inventory (inventory_id serial PRIMARY KEY, film_id integer NOT NULL REFERENCES film, store_id integer NOT NULL REFERENCES store);
CREATE TABLE rental (rental_id serial PRIMARY KEY, rental_date timestamptz NOT NULL, inventory_id integer NOT NULL REFERENCES inventory, customer_id integer NOT NULL REFERENCES customer, return_date timestamptz, staff_id integer NOT NULL REFERENCES staff, UNIQUE (rental_date, inventory_id, customer_id));
CREATE TABLE payment (payment_id serial PRIMARY KEY, customer_id integer NOT NULL REFERENCES customer, staff_id integer REFERENCES staff, rental_id integer REFERENCES rental, amount numeric(5,2) NOT NULL, payment_date timestamptz NOT NULL);
