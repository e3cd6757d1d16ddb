-- The tables of TPC-H with their keys. NOT NULL is on keys and on what references one.
CREATE TABLE region (r_regionkey BIGINT PRIMARY KEY, r_name STRING, r_comment STRING);
CREATE TABLE nation (
  n_nationkey BIGINT PRIMARY KEY, n_name STRING, n_regionkey BIGINT NOT NULL REFERENCES region, n_comment STRING);
CREATE TABLE supplier (
  s_suppkey BIGINT PRIMARY KEY, s_name STRING, s_address STRING, s_nationkey BIGINT NOT NULL REFERENCES nation,
  s_phone STRING, s_acctbal DECIMAL(15,2), s_comment STRING);
CREATE TABLE customer (
  c_custkey BIGINT PRIMARY KEY, c_name STRING, c_address STRING, c_nationkey BIGINT NOT NULL REFERENCES nation,
  c_phone STRING, c_acctbal DECIMAL(15,2), c_mktsegment STRING, c_comment STRING);
CREATE TABLE part (
  p_partkey BIGINT PRIMARY KEY, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT,
  p_container STRING, p_retailprice DECIMAL(15,2), p_comment STRING);
CREATE TABLE partsupp (
  ps_partkey BIGINT NOT NULL REFERENCES part, ps_suppkey BIGINT NOT NULL REFERENCES supplier, ps_availqty INT,
  ps_supplycost DECIMAL(15,2), ps_comment STRING, PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE orders (
  o_orderkey BIGINT PRIMARY KEY, o_custkey BIGINT NOT NULL REFERENCES customer, o_orderstatus STRING,
  o_totalprice DECIMAL(15,2), o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INT,
  o_comment STRING);
CREATE TABLE lineitem (
  l_orderkey BIGINT NOT NULL REFERENCES orders, l_partkey BIGINT NOT NULL REFERENCES part,
  l_suppkey BIGINT NOT NULL REFERENCES supplier,
  l_linenumber INT, l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2),
  l_tax DECIMAL(15,2), l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE,
  l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING, l_comment STRING,
  PRIMARY KEY (l_orderkey, l_linenumber), FOREIGN KEY (l_partkey, l_suppkey) REFERENCES partsupp)
