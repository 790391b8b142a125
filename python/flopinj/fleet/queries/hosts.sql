-- Hosts whose ranks are slower than their jobs' others, over all jobs.
SELECT hostname, count(DISTINCT job) AS jobs, count(*) AS ranks,
       sum(timed_ns) * 1.0 / sum(usual_ns) AS slowdown, max(slowdown) AS largest_slowdown
FROM ranks
GROUP BY hostname
ORDER BY slowdown DESC NULLS LAST, hostname
LIMIT {top}
