-- Where GPU-hours went, by line of "where the peak went"; lines with a parent are parts of it.
WITH total AS (SELECT sum(gpu_hours) AS hours FROM jobs)
SELECT line, parent, count(DISTINCT job) AS jobs,
       sum(lost.gpu_hours) AS gpu_hours,
       sum(lost.gpu_hours) * {price} AS cost,
       sum(lost.gpu_hours) / min(total.hours) AS gpu_hours_share
FROM lost CROSS JOIN total
GROUP BY line, parent
ORDER BY gpu_hours DESC NULLS LAST, line
LIMIT {top}
