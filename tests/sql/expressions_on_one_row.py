"""Expressions over one row of every type, whose values Spark compares before and after our dialect."""

ON_ONE_ROW = r"""
a DIV b
t || t || t
t || b + c
b + t || c
a <=> b
a IS DISTINCT FROM b
a IS NOT DISTINCT FROM b
a = b IN (true)
a = b NOT IN (f)
f = (a NOT IN (1))
t LIKE t = t
f BETWEEN false AND a = b
f NOT BETWEEN false AND a < b
a = b > f
a = b BETWEEN false AND true
a = b IS NOT NULL
a <=> b IS NULL
NOT a = b
! f
a::STRING
-a::BIGINT
arr[0]
m['k']
st.b.c
(st).b
INTERVAL 1 DAY
INTERVAL '1' DAY
INTERVAL '1 day 2 hours'
INTERVAL 1 DAY 2 HOURS
INTERVAL 1 DAY -2 HOURS
INTERVAL -1 MONTH
INTERVAL '1-2' YEAR TO MONTH
INTERVAL '1 02:03:04.5' DAY TO SECOND
INTERVAL 1.5 SECOND
- INTERVAL '1' DAY
d + INTERVAL 1 MONTH - INTERVAL '2' DAYS
DATE '2024-01-31'
TIMESTAMP '2024-01-31 12:00:00'
TIMESTAMP_NTZ '2024-01-31 12:00:00'
TIMESTAMP_LTZ '2024-01-31 12:00:00'
TIMESTAMP '2024-01-31 12:00:00+02:00'
TIME '12:00:00'
DATE '2024-01-31'::STRING
X'1F2C'
x'1f'
X'1'
1L
1S
1Y
1.0BD
1e3D
1E3
1.5
.5
5.
1.5F
-1L
1e-3
100BD
0.10BD
1e5BD
0.00
-0.0
t LIKE 'x%'
t NOT LIKE 'x%'
t LIKE 'x/%' ESCAPE '/'
t NOT LIKE 'x/%' ESCAPE '/'
t LIKE ANY ('x', 'y')
t LIKE ALL ('x', 'y')
t NOT LIKE ANY ('x', 'y')
t LIKE SOME ('x', 'y')
t ILIKE 'x'
t ILIKE ANY ('x', 'y')
t NOT ILIKE ALL ('x%', 'y')
t RLIKE '^x'
t REGEXP '^x'
t NOT RLIKE '^x'
a NOT BETWEEN 1 AND 2
(a, b) IN ((1, 2), (3, 4))
f IS TRUE
f IS NOT FALSE
f IS UNKNOWN
f IS NOT UNKNOWN
a | b & c
a & b ^ c | a
a << 2
a >> 2
a >>> 2
a + 1 << 2
a & b << 2
a << b + c
a ^ b << 1 & 3
+ a
+ '5'
- - a
- (- a)
CASE WHEN f THEN 1 ELSE 2 END
CASE a WHEN 1 THEN 'x' WHEN 2 THEN 'y' END
IF(f, 1, 2)
CAST(a AS DECIMAL(10, 2))
CAST(t AS VARCHAR(2))
CAST(t AS CHAR(5))
CAST(t AS STRING COLLATE UTF8_LCASE)
CAST(a AS BYTE)
CAST(a AS DEC(5))
CAST(a AS REAL)
CAST(NULL AS MAP<STRING, ARRAY<INT>>)
CAST(st AS STRUCT<x: STRUCT<y: STRING>>)
CAST(NULL AS INTERVAL DAY TO SECOND)
CAST('12:00:00' AS TIME(3))
CAST(NULL AS TIME)
CAST(NULL AS VARIANT)
CAST(ts AS TIMESTAMP_NTZ)
TRY_CAST(t AS INT)
EXTRACT(YEAR FROM d)
EXTRACT(DOW FROM d)
TRIM('x', t)
TRIM(BOTH 'x' FROM t)
TRIM(LEADING 'x' FROM t)
TRIM(TRAILING FROM t)
TRIM(BOTH FROM t)
TRIM('x' FROM t)
TRIM(FROM t)
SUBSTRING(t FROM 1 FOR 2)
SUBSTR(t FROM 2)
SUBSTRING(t FROM 2)
POSITION('x' IN t)
OVERLAY(t PLACING 'x' FROM 2 FOR 1)
OVERLAY(t PLACING 'x' FROM 2)
t COLLATE UTF8_LCASE
COUNT(*) FILTER(WHERE a > 1)
COUNT(a, b)
MEAN(a)
STD(a)
VAR_SAMP(a)
EVERY(f)
ANY(f) FILTER (WHERE f)
SOME(f)
PERCENTILE(DISTINCT a, 0.5)
PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a)
MODE() WITHIN GROUP (ORDER BY a)
LISTAGG(DISTINCT t, ',') WITHIN GROUP (ORDER BY t)
FIRST(a, TRUE)
FIRST(a IGNORE NULLS)
FIRST(a) IGNORE NULLS
LAST_VALUE(a, TRUE) OVER (ORDER BY c)
FIRST_VALUE(a) IGNORE NULLS OVER (PARTITION BY b ORDER BY c)
ANY_VALUE(a) RESPECT NULLS
ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC NULLS LAST)
RANK() OVER (ORDER BY b NULLS LAST)
SUM(a) OVER (ORDER BY b ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
SUM(a) OVER (ORDER BY d RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND CURRENT ROW)
SUM(a) OVER (ORDER BY b ROWS 2 PRECEDING)
SUM(a) OVER (DISTRIBUTE BY b SORT BY c)
STRUCT(a AS x, b)
STRUCT(*)
TRANSFORM(arr, x -> x + 1)
TRANSFORM(arr, X -> x + 1)
TRANSFORM(ARRAY(st), x -> x.b.c)
TRANSFORM(ARRAY(st), `x y` -> `x y`.b.c)
AGGREGATE(arr, 0, (acc, x) -> acc + x, acc -> acc * 10)
MASK(t, upperChar => 'Q')
'a' 'b'
r'\d+' 'x'
'x' r'\d+'
r'\d+'
R"\w"
'it\'s'
'it''s'
"double"
"do""uble"
'a\nb\tc\0\\d'
'\%\_'
'100\%'
'\u00e9\U0001F600'
'\101'
''
'🎉'
(SELECT MAX(a) FROM one_row)
a IN (SELECT a FROM one_row)
EXISTS (SELECT 1 FROM one_row)
a NOT IN (SELECT a FROM one_row)
CURRENT_DATE
current_user
user
`nvl`(a, 1)
system.builtin.upper(t)
date_add(day, 1, d)
`date_add`(d, 1)
int(t)
date(t)
decimal(a)
map('a', 1)['a']
array(1, 2)[0]
named_struct('x', 1).x
arr[a]
a % 2 = 0 AND NOT f OR t IS NULL
a / b / c
a - (b - c)
a * (b + c)
CASE WHEN a = 1 THEN 1 END + 1
a <> b
a != b
a == b
a !< b
a !> b
""".strip().splitlines()
"""Over the row of `ONE_ROW`, for Spark to compare."""

ONE_ROW = """
SELECT 1 AS a, 2 AS b, 3 AS c, TRUE AS f, 'xyz' AS t, ARRAY(1, 2) AS arr, MAP('k', 1) AS m, DATE '2024-01-31' AS d,
    TIMESTAMP '2024-01-31 01:02:03' AS ts, NAMED_STRUCT('b', NAMED_STRUCT('c', 1)) AS st
"""
