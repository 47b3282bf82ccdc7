-- An order shop: who bought what, when, for how much. 20,000 customers, 60,000 orders, 150,000 lines, all made up; the same
-- rows each time, for they hang on row numbers alone.
CREATE TYPE channel AS ENUM ('web', 'app', 'phone', 'store');
CREATE TYPE order_status AS ENUM ('new', 'paid', 'shipped', 'returned');

CREATE TABLE countries (
  code char(2) PRIMARY KEY,
  name text NOT NULL
);

CREATE TABLE categories (
  category_id integer PRIMARY KEY,
  name text NOT NULL UNIQUE
);

CREATE TABLE products (
  product_id integer PRIMARY KEY,
  name text NOT NULL,
  category_id integer NOT NULL REFERENCES categories,
  price numeric(8,2) NOT NULL CHECK (price BETWEEN 0 AND 500)
);

CREATE TABLE customers (
  customer_id bigint PRIMARY KEY,
  full_name text NOT NULL,
  email text NOT NULL UNIQUE,
  born date NOT NULL,
  country char(2) NOT NULL REFERENCES countries,
  newsletter boolean NOT NULL,
  joined_on date NOT NULL
);

CREATE TABLE orders (
  order_id bigint PRIMARY KEY,
  customer_id bigint NOT NULL REFERENCES customers,
  placed_at timestamptz NOT NULL,
  channel channel NOT NULL,
  status order_status NOT NULL,
  shipping numeric(6,2) NOT NULL CHECK (shipping BETWEEN 0 AND 50),
  note text
);
CREATE INDEX ON orders (customer_id);

CREATE TABLE order_lines (
  order_id bigint NOT NULL REFERENCES orders,
  line_no smallint NOT NULL,
  product_id integer NOT NULL REFERENCES products,
  quantity smallint NOT NULL CHECK (quantity BETWEEN 1 AND 10),
  unit_price numeric(8,2) NOT NULL,
  discount numeric(3,2) NOT NULL DEFAULT 0 CHECK (discount BETWEEN 0 AND 0.5),
  PRIMARY KEY (order_id, line_no)
);

INSERT INTO countries VALUES ('AT', 'Austria'), ('CH', 'Switzerland'), ('DE', 'Germany'), ('FR', 'France'), ('IT', 'Italy');
INSERT INTO categories VALUES (1, 'Books'), (2, 'Garden'), (3, 'Kitchen'), (4, 'Office'), (5, 'Toys');

-- die(n, salt, sides) is a made-up number below sides.
CREATE FUNCTION die(n bigint, salt integer, sides integer) RETURNS integer IMMUTABLE LANGUAGE sql
  AS $$ SELECT (hashint8extended(n, salt) & 2147483647)::bigint % sides $$;

INSERT INTO products
  SELECT i, 'Product ' || i, 1 + die(i, 1, 5), 2 + die(i, 2, 9800) / 100.0 FROM generate_series(1, 100) i;

INSERT INTO customers
  SELECT i, 'Customer ' || i, 'c' || i || '@example.org', date '1945-01-01' + die(i, 3, 22000),
         (ARRAY['DE','DE','DE','DE','FR','FR','IT','IT','AT','CH'])[1 + die(i, 4, 10)],
         die(i, 5, 3) = 0, date '2021-01-01' + die(i, 6, 1460)
  FROM generate_series(1, 20000) i;

-- A few customers order often, most seldom: the root of a uniform number makes low numbers rare.
INSERT INTO orders
  SELECT i, 1 + floor(20000 * sqrt(die(i, 7, 1000000) / 1000000.0)), timestamptz '2025-01-01 00:00+00' + die(i, 8, 525600) * interval '1 minute',
         (ARRAY['web','web','web','app','app','app','app','phone','store','store'])[1 + die(i, 9, 10)]::channel,
         (ARRAY['new','paid','paid','shipped','shipped','shipped','shipped','shipped','shipped','returned'])[1 + die(i, 10, 10)]::order_status,
         (ARRAY[0, 0, 3.9, 3.9, 3.9, 6.9, 12.5])[1 + die(i, 11, 7)], CASE WHEN die(i, 12, 20) = 0 THEN 'Please ring twice' END
  FROM generate_series(1, 60000) i;

INSERT INTO order_lines
  SELECT o.order_id, n, p.product_id, 1 + die(o.order_id * 10 + n, 13, 4), p.price, (ARRAY[0, 0, 0, 0.1, 0.25])[1 + die(o.order_id, 14, 5)]
  FROM orders o CROSS JOIN LATERAL generate_series(1, 1 + die(o.order_id, 15, 4)) n
  JOIN products p ON p.product_id = 1 + die(o.order_id * 10 + n, 16, 100);

DROP FUNCTION die;

-- The role that dpproxy connects as: it reads, and can do nothing else.
CREATE ROLE dpproxy LOGIN PASSWORD 'reader';
GRANT SELECT ON ALL TABLES IN SCHEMA public TO dpproxy;
REVOKE TEMPORARY ON DATABASE shop FROM PUBLIC;
ANALYZE;
