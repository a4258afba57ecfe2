-- Keep records until they expire; each call also clears some that have.
-- KEYS: records, expiry      ARGV: time, their life in milliseconds, expiry, then for each: key, value with its expiry
local records, expiry = unpack(KEYS)
for i = 4, #ARGV, 2 do
  redis.call('HSET', records, ARGV[i], ARGV[i + 1])
  redis.call('ZADD', expiry, ARGV[3], ARGV[i])
end
local old = redis.call('ZRANGEBYSCORE', expiry, '-inf', ARGV[1], 'LIMIT', 0, #ARGV)
for _, key in ipairs(old) do
  redis.call('HDEL', records, key)
  redis.call('ZREM', expiry, key)
end
if redis.call('PTTL', records) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', records, ARGV[2])
  redis.call('PEXPIRE', expiry, ARGV[2])
end
return 1
