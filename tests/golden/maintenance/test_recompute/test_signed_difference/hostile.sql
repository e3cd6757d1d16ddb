SELECT
  `it``s`,
  `say "hi"; --`,
  `two
lines */`,
  `größe`,
  SUM(`_vk_sign`) AS `_vk_count`,
  SUM(`_vk_old_count`) AS `_vk_old_count`
FROM (
  SELECT
    `it``s`,
    `say "hi"; --`,
    `two
lines */`,
    `größe`,
    1 AS `_vk_sign`,
    0 AS `_vk_old_count`
  FROM `v_new`
  UNION ALL
  SELECT
    `it``s`,
    `say "hi"; --`,
    `two
lines */`,
    `größe`,
    -1 AS `_vk_sign`,
    1 AS `_vk_old_count`
  FROM `v old`
)
GROUP BY
  `it``s`,
  `say "hi"; --`,
  `two
lines */`,
  `größe`
HAVING
  SUM(`_vk_sign`) <> 0
