-- What can be asked instead of queries that list customers or orders, or that read what the policy does not declare.
-- Q3 revenue by order date
SELECT o_orderdate, o_shippriority, sum(l_extendedprice * (1 - l_discount)) AS revenue FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < date '1995-03-15' AND l_shipdate > date '1995-03-15'
GROUP BY o_orderdate, o_shippriority ORDER BY revenue DESC
-- Q10 returned items by nation
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= date '1993-10-01' AND o_orderdate < date '1993-10-01' + interval '3' month
  AND l_returnflag = 'R' AND c_nationkey = n_nationkey GROUP BY n_name ORDER BY revenue DESC
-- Q18 number of large orders
SELECT count(*) AS orders FROM (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 200) AS t
-- Q20 quantities by supplier
SELECT l_suppkey, sum(l_quantity) AS quantity FROM lineitem WHERE l_shipdate >= date '1994-01-01' AND l_shipdate < date '1994-01-01' + interval '1' year
GROUP BY l_suppkey ORDER BY l_suppkey
