-- Write a document over the revision that is expected (0: none is there), or remove it, which a full server takes as well.
-- KEYS: values, names, revision      ARGV: name, expected revision, "put" or "remove", value, channel, kind
local row = redis.call('HGET', KEYS[1], ARGV[1])
local revision = row and string.match(row, '^(%d+) ') or '0'
if revision ~= ARGV[2] then return 0 end
local fresh = 1
if ARGV[3] == 'put' then
  fresh = redis.call('INCR', KEYS[3])
  redis.call('HSET', KEYS[1], ARGV[1], fresh .. ' ' .. ARGV[4])
  redis.call('ZADD', KEYS[2], 0, ARGV[1])
else
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
end
redis.call('PUBLISH', ARGV[5], 'document ' .. ARGV[6] .. '/' .. ARGV[1] .. ' 0')
return fresh
