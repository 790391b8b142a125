-- Each day (UTC): a long job counts on each of its days by the part of its time that is there.
SELECT day, count(DISTINCT job) AS jobs, sum(gpu_hours) AS gpu_hours,
       sum(gpu_hours) * {price} AS cost, sum(flop) AS flop
FROM days
GROUP BY day
ORDER BY day DESC
LIMIT {top}
