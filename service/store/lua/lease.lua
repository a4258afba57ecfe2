-- Give each record that waits, and that nobody else has, to the caller; clears leases that are over.
-- KEYS: ranks, leases      ARGV: time now, end of the lease, keys of records...
-- Replies the keys that were given.
local given = {}
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[1])
for i = 3, #ARGV do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) and redis.call('ZADD', KEYS[2], 'NX', ARGV[2], ARGV[i]) == 1 then
    given[#given + 1] = ARGV[i]
  end
end
redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[1]), 1))
return given
