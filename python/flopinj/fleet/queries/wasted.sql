-- Who wastes GPU-hours: those of each team and user that did no FLOP at peak.
SELECT team, user_name, count(*) AS jobs,
       sum(gpu_hours) AS gpu_hours,
       sum(gpu_hours * (1 - hfu)) AS wasted_gpu_hours,
       sum(gpu_hours * (1 - hfu)) * {price} AS wasted_cost,
       sum(gpu_hours * hfu) / sum(gpu_hours) AS hfu
FROM jobs
WHERE hfu IS NOT NULL AND gpu_hours > 0
GROUP BY team, user_name
ORDER BY wasted_gpu_hours DESC, team NULLS LAST, user_name NULLS LAST
LIMIT {top}
