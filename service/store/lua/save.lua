-- Register a snapshot whose parts are already there, with the outcomes up to it, and let go what retention allows.
-- KEYS: meta, log, snapshots, outcomes, ids, order
-- ARGV: log, channel, version, digest, chain or "", upload, number of parts, keep, floor, forget, prefix of part keys,
--       chain of an empty log, chain of a log that starts here, version up to which what was retracted is left out, then
--       version and sealed outcome in turn
-- Replies the digest stored at this version, "closed" or "diverged VERSION".
local meta, log, snapshots, outcomes, ids, order = unpack(KEYS)
local at, digest, keep, floor = tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[8]), tonumber(ARGV[9])
local prefix, STEP = ARGV[11], 5000
local function unlink(row)
  local upload, parts = string.match(row, '(%S+) (%d+)$')
  for i = 0, tonumber(parts) - 1 do redis.call('UNLINK', prefix .. upload .. ':' .. i) end
end
local mine = ARGV[6] .. ' ' .. ARGV[7]
local state = redis.call('HMGET', meta, 'version', 'floor', 'retracted', 'closed', 'chain', 'root', 'forgotten')
if state[4] then
  unlink(mine)
  return 'closed'
end
local version, first, retracted = tonumber(state[1] or 0), tonumber(state[2] or 1), tonumber(state[3] or 0)
local head, root, forgotten = state[5] or ARGV[12], state[6] or ARGV[12], tonumber(state[7] or 0)
local function chain_at(where)
  if where == version then return head end
  if where == first - 1 then return root end
  if where < first or where > version then return nil end
  local entry = redis.call('XRANGE', log, where .. '-0', where .. '-0')[1]
  for i = 1, entry and #entry[2] or 0, 2 do
    if entry[2][i] == 'c' then return entry[2][i + 1] end
  end
end
if ARGV[5] ~= '' and (at > version or (at >= first - 1 and chain_at(at) ~= ARGV[5])) then
  unlink(mine)
  return 'diverged ' .. version
end
-- What may contain a retracted entry is not kept, and not compared either: who saved it will hear of the retraction.
local late = at < retracted and tonumber(ARGV[14]) < retracted
local other = redis.call('HGET', snapshots, at)
if other and not late and string.match(other, '^%S+') ~= digest then
  unlink(mine)
  return (string.match(other, '^%S+'))
end
for i = 15, #ARGV, 2 do
  if tonumber(ARGV[i]) > forgotten then redis.call('HSETNX', outcomes, ARGV[i], ARGV[i + 1]) end
end

local upto = math.min(tonumber(ARGV[10]), version, forgotten + STEP)
if upto > forgotten then
  for _, entry in ipairs(redis.call('XRANGE', order, '-', upto .. '-0')) do
    for i = 2, #entry[2], 2 do redis.call('HDEL', ids, entry[2][i]) end
  end
  redis.call('XTRIM', order, 'MINID', (upto + 1) .. '-0')
  for i = forgotten + 1, upto do redis.call('HDEL', outcomes, i) end
  redis.call('HSET', meta, 'forgotten', upto)
end

if other or late then
  unlink(mine)
  if late then return digest end
else
  if version == 0 and at > 0 then
    first, version, head, root = at + 1, at, ARGV[13], ARGV[13]
    redis.call('HSET', meta, 'version', at, 'floor', first, 'chain', head, 'root', root)
  end
  for i = 0, tonumber(ARGV[7]) - 1 do redis.call('PERSIST', prefix .. ARGV[6] .. ':' .. i) end
  redis.call('HSET', snapshots, at, digest .. ' ' .. (chain_at(at) or '-') .. ' ' .. ARGV[14] .. ' ' .. mine)
end
local versions = redis.call('HKEYS', snapshots)
table.sort(versions, function(a, b) return tonumber(a) > tonumber(b) end)
for i = keep + 1, #versions do
  unlink(redis.call('HGET', snapshots, versions[i]))
  redis.call('HDEL', snapshots, versions[i])
end
floor = math.min(floor, tonumber(versions[math.min(keep, #versions)]) + 1)
if floor > first then
  redis.call('HSET', meta, 'floor', floor, 'root', chain_at(floor - 1))
  redis.call('XTRIM', log, 'MINID', floor .. '-0')
end
redis.call('PUBLISH', ARGV[2], 'snapshot ' .. ARGV[1] .. ' ' .. at)
return digest
