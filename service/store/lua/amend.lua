-- Change a record, if it is still the one that is expected.
-- KEYS: records, due      ARGV: time, key, checksum expected, sealed value, due time or ""
local row = redis.call('HGET', KEYS[1], ARGV[2])
if not row then return 'missing' end
local expires, taken, size = struct.unpack('<dI4B', row)
if expires <= tonumber(ARGV[1]) or taken > 0 then return 'missing' end
if string.sub(row, 14 + size, 45 + size) ~= ARGV[3] then return 'stale' end
redis.call('HSET', KEYS[1], ARGV[2], string.sub(row, 1, 13 + size) .. ARGV[4])
if ARGV[5] ~= '' then
  redis.call('ZADD', KEYS[2], ARGV[5], ARGV[2])
  redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[1]), 1))
end
return 'amended'
