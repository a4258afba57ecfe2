-- Register a snapshot whose data is already there, with the outcomes up to it, and let go what retention allows.
-- KEYS: meta, log, snapshots, outcomes, data of the snapshot
-- ARGV: log, channel, version, digest, keep, floor, prefix of data keys, then version and outcome in turn
local meta, log, snapshots, outcomes, data = unpack(KEYS)
local at, digest, keep, floor = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local held = redis.call('HMGET', meta, 'version', 'floor', 'marked', 'closed')
if held[4] then
  redis.call('DEL', data)
  return 'closed'
end
local version, first, marked = tonumber(held[1] or 0), tonumber(held[2] or 1), tonumber(held[3] or 0)
local other = redis.call('HGET', snapshots, at)
if other and other ~= digest then
  redis.call('DEL', data)
  return other
end
for i = 8, #ARGV, 2 do redis.call('HSETNX', outcomes, ARGV[i], ARGV[i + 1]) end
if at < marked then
  redis.call('DEL', data)
  return digest
end
redis.call('PERSIST', data)
redis.call('HSET', snapshots, at, digest)
if version == 0 and at > 0 then
  first = at + 1
  redis.call('HSET', meta, 'version', at, 'floor', first)
end
local versions = redis.call('HKEYS', snapshots)
table.sort(versions, function(a, b) return tonumber(a) > tonumber(b) end)
for i = keep + 1, #versions do
  redis.call('DEL', ARGV[7] .. versions[i] .. ':' .. redis.call('HGET', snapshots, versions[i]))
  redis.call('HDEL', snapshots, versions[i])
end
floor = math.min(floor, tonumber(versions[math.min(keep, #versions)]) + 1)
if floor > first then
  redis.call('XTRIM', log, 'MINID', floor .. '-0')
  redis.call('HSET', meta, 'floor', floor)
end
redis.call('PUBLISH', ARGV[2], 'snapshot ' .. ARGV[1] .. ' ' .. at)
return digest
