-- A job's ranks, by how long their kernels take beside the same kernels on the job's other ranks. A
-- launch is expected to take the median over the ranks of the mean time of its signature in its
-- range; only times count that were measured while no counters were read. Collectives wait for
-- others, so they say nothing of their own rank.
WITH times AS (
    SELECT session, rank, hostname, device, range, stable_hash,
           sum(timed_launches) AS launches, sum(timed_ns) AS ns
    FROM rows
    WHERE timed_launches > 0 AND coalesce(phase, '') <> 'communication'
    GROUP BY session, rank, hostname, device, range, stable_hash
),
usual AS (
    SELECT range, stable_hash, median(ns / launches) AS ns
    FROM times
    GROUP BY range, stable_hash
)
SELECT session, rank, hostname, device,
       TRY_CAST(sum(times.ns) AS BIGINT) AS timed_ns,
       TRY_CAST(sum(times.launches * usual.ns) AS BIGINT) AS usual_ns,
       sum(times.ns) / sum(times.launches * usual.ns) AS slowdown
FROM times
JOIN usual ON times.stable_hash = usual.stable_hash
    AND times.range IS NOT DISTINCT FROM usual.range
GROUP BY session, rank, hostname, device
ORDER BY session, device
