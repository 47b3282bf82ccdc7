-- Sales and invoices of an enterprise: currency rates, ageing, teams.
CREATE TABLE res_partner (id integer PRIMARY KEY, country_code text, customer_rank integer, create_date timestamp, is_company boolean);
INSERT INTO res_partner SELECT i, (ARRAY['AT', 'DE', 'CH'])[1 + i % 3], i % 4, timestamp '2023-06-01' + i * interval '1 day', i % 3 = 0 FROM generate_series(1, 300) s(i);
CREATE TABLE sale_order (id integer PRIMARY KEY, partner_id integer REFERENCES res_partner, date_order timestamp, state text, amount_untaxed numeric(10,1), team_id integer, currency_id integer);
INSERT INTO sale_order SELECT i, 1 + (i * 11) % 300, timestamp '2024-01-01' + i * interval '8 hours', (ARRAY['draft', 'sent', 'sale', 'sale', 'cancel'])[1 + i % 5], (i % 61) * 0.5, 1 + i % 3, 1 + i % 2 FROM generate_series(1, 900) s(i);
CREATE TABLE account_move (id integer PRIMARY KEY, partner_id integer REFERENCES res_partner, invoice_date date, invoice_date_due date, amount_residual numeric(10,1), move_type text, payment_state text);
INSERT INTO account_move SELECT i, 1 + (i * 17) % 300, date '2024-01-01' + i % 300, date '2024-01-31' + i % 300, CASE WHEN i % 3 = 0 THEN (i % 41) * 0.5 ELSE 0 END, CASE WHEN i % 7 = 0 THEN 'out_refund' ELSE 'out_invoice' END, CASE WHEN i % 3 = 0 THEN 'not_paid' ELSE 'paid' END FROM generate_series(1, 600) s(i);
CREATE TABLE res_currency_rate (currency_id integer PRIMARY KEY, rate numeric(8,2));
INSERT INTO res_currency_rate VALUES (1, 1.00), (2, 1.25);
CREATE TABLE crm_team (id integer PRIMARY KEY, name text);
INSERT INTO crm_team VALUES (1, 'Europe'), (2, 'America'), (3, 'Website');
-- policy: {name: partner, key: res_partner.id, type: integer}
      - {name: res_partner, max_rows_per_unit: 1, expected_rows: 300, columns: [{name: id, type: integer, keys: join}, {name: country_code, type: text, domain: {values: [AT, DE, CH]}, nulls: exclude, outside: exclude}, {name: customer_rank, type: integer, domain: {min: 0, max: 3}}, {name: create_date, type: timestamp, domain: {min: 2023-01-01, below: 2025-01-01, step: 1 day}}, {name: is_company, type: boolean}]}
      - {name: sale_order, unit: sale_order.partner_id = res_partner.id, max_rows_per_unit: 3, expected_rows: 900, columns: [{name: id, type: integer, keys: join}, {name: partner_id, type: integer, keys: join}, {name: date_order, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 hour}}, {name: state, type: text, domain: {values: [draft, sent, sale, cancel]}, nulls: exclude, outside: exclude}, {name: amount_untaxed, type: "numeric(10,1)", domain: {min: 0, max: 30, step: 0.5}}, {name: team_id, type: integer, domain: {min: 1, max: 3}}, {name: currency_id, type: integer, domain: {min: 1, max: 2}}]}
      - {name: account_move, unit: account_move.partner_id = res_partner.id, max_rows_per_unit: 2, expected_rows: 600, columns: [{name: id, type: integer, keys: join}, {name: partner_id, type: integer, keys: join}, {name: invoice_date, type: date, domain: {min: 2024-01-01, max: 2024-12-31}}, {name: invoice_date_due, type: date, domain: {min: 2024-01-01, max: 2024-12-31}}, {name: amount_residual, type: "numeric(10,1)", domain: {min: 0, max: 20, step: 0.5}}, {name: move_type, type: text, domain: {values: [out_invoice, out_refund]}, nulls: exclude, outside: exclude}, {name: payment_state, type: text, domain: {values: [paid, not_paid]}, nulls: exclude, outside: exclude}]}
      - {name: res_currency_rate, public: true, columns: [{name: currency_id, type: integer}, {name: rate, type: "numeric(8,2)"}]}
      - {name: crm_team, public: true, columns: [{name: id, type: integer}, {name: name, type: text}]}
-- reports
-- refused: DP002 this expression is not constant within the steps of column "amount_untaxed"
SELECT t.name AS team, count(*) AS nbr, sum(s.amount_untaxed / CASE COALESCE(r.rate, 0) WHEN 0 THEN 1.0 ELSE r.rate END) AS price_subtotal FROM sale_order s LEFT JOIN crm_team t ON t.id = s.team_id LEFT JOIN res_currency_rate r ON r.currency_id = s.currency_id WHERE s.state IN ('sale', 'done') GROUP BY t.name ORDER BY 1;
SELECT extract(year FROM date_order)::int AS year, extract(quarter FROM date_order)::int AS quarter, sum(amount_untaxed) FROM sale_order WHERE state NOT IN ('draft', 'cancel', 'sent') GROUP BY 1, 2 HAVING count(*) > 0 ORDER BY 1, 2;
SELECT CASE WHEN date '2024-12-31' - invoice_date_due <= 30 THEN '0-30' WHEN date '2024-12-31' - invoice_date_due <= 90 THEN '31-90' ELSE 'older' END AS bucket, sum(amount_residual) FROM account_move WHERE move_type = 'out_invoice' AND payment_state = 'not_paid' AND amount_residual > 0 GROUP BY 1 HAVING count(*) > 0 ORDER BY 1;
SELECT sum(CASE WHEN move_type IN ('out_refund', 'in_refund') THEN -amount_residual ELSE amount_residual END) AS residual FROM account_move;
SELECT p.country_code, count(DISTINCT s.partner_id) AS customers, sum(s.amount_untaxed) AS total, avg(s.amount_untaxed) AS mean FROM sale_order s JOIN res_partner p ON p.id = s.partner_id WHERE s.state = 'sale' GROUP BY 1 ORDER BY 1;
SELECT round(extract(epoch from avg(date_trunc('day', s.date_order) - date_trunc('day', p.create_date))) / (24*60*60)::decimal(16,2), 0) AS delay FROM sale_order s JOIN res_partner p ON p.id = s.partner_id WHERE s.state = 'sale';
SELECT round((avg(extract(epoch FROM date_trunc('day', s.date_order) - date_trunc('day', p.create_date))) / 86400)::numeric, 0) AS delay FROM sale_order s JOIN res_partner p ON p.id = s.partner_id WHERE s.state = 'sale';
SELECT to_char(invoice_date, 'IYYY-IW') AS week, count(*) FROM account_move GROUP BY 1 HAVING count(*) > 0 ORDER BY 1;
SELECT s.state, round(100.0 * count(*) / sum(count(*)) OVER (), 2) AS share FROM sale_order s GROUP BY s.state ORDER BY 1;
SELECT count(*) FROM res_partner p WHERE p.customer_rank > 0 AND NOT EXISTS (SELECT 1 FROM sale_order s WHERE s.partner_id = p.id AND s.date_order >= '2024-06-01' AND s.state = 'sale');
SELECT DISTINCT state FROM sale_order ORDER BY state;
-- refused: 42501 "id" names rows of one partner: it may join, be counted with DISTINCT, and nothing else
SELECT MIN(l.id) AS id, l.team_id, l.state, COUNT(l.id) AS n FROM sale_order l GROUP BY l.team_id, l.state
