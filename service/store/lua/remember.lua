-- Keep records until they expire; each call also clears a few that have.
-- KEYS: records, expiry      ARGV: time, expiry, life in milliseconds, then key and value (with its expiry) in turn
local records, expiry = unpack(KEYS)
for i = 4, #ARGV, 2 do
  redis.call('HSET', records, ARGV[i], ARGV[i + 1])
  redis.call('ZADD', expiry, ARGV[2], ARGV[i])
end
local old = redis.call('ZRANGEBYSCORE', expiry, '-inf', ARGV[1], 'LIMIT', 0, #ARGV)
for _, key in ipairs(old) do
  redis.call('HDEL', records, key)
  redis.call('ZREM', expiry, key)
end
if redis.call('PTTL', records) < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', records, ARGV[3])
  redis.call('PEXPIRE', expiry, ARGV[3])
end
return 1
