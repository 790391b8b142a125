-- Hosts whose ranks are slower than their jobs' others, over all jobs.
SELECT hostname, count(DISTINCT job) AS jobs, count(*) AS ranks,
       CAST(sum(timed_ns) AS DOUBLE) / CAST(sum(usual_ns) AS DOUBLE) AS host_slowdown,
       max(slowdown) AS largest_slowdown
FROM rank_slowdown
GROUP BY hostname
ORDER BY host_slowdown DESC NULLS LAST, hostname
LIMIT {top}
