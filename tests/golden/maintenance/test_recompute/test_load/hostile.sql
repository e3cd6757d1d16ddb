SELECT
  `it``s`,
  `say "hi"; --`,
  `two
lines */`,
  `größe`,
  `_vk_copy`
FROM (
  SELECT
    `it``s`,
    `say "hi"; --`,
    `two
lines */`,
    `größe`,
    COUNT(*) AS `_vk_count`
  FROM `v_query`
  GROUP BY
    `it``s`,
    `say "hi"; --`,
    `two
lines */`,
    `größe`
)
LATERAL VIEW
EXPLODE(SEQUENCE(1, CAST(`_vk_count` AS INT))) AS `_vk_copy`
