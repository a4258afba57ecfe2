-- Append drafts to a log: all of them, each once, taking the records they name, or none.
-- KEYS: meta, log, ids, order, retracted, snapshots, records, expiry, due, and others that have keys of records
-- ARGV: log, channel, time, prefix of part keys, chain of an empty log, version and chain that the writer expects or "",
--       1 to write in any case, then for each draft:
--       body, its checksum, digest, record or "", checksum that the record must have or "", retracts, base, 1 if it revises
--       or "", number of ids, ids...
-- Replies "placed CHAIN TIME VERSION FRESH CHAIN ...", "clash INDEX", "missing INDEX", "stale", "trimmed", "diverged VERSION", "full",
--         "damaged INDEX" (the row of an id), "erased INDEX PLACE" (of the id), "closed".
local meta, log, ids, order, retracted, snapshots, records, expiry = unpack(KEYS)
local now = tonumber(ARGV[3])
local state = redis.call('HMGET', meta, 'version', 'floor', 'closed', 'chain', 'root', 'at', 'salt')
local version, floor, closed = tonumber(state[1] or 0), tonumber(state[2] or 1), state[3]
local chain, root = state[4] or ARGV[5], state[5] or ARGV[5]
if closed then return 'closed' end

if ARGV[6] ~= '' then
  local expected, there = tonumber(ARGV[6]), nil
  if expected == version then there = chain
  elseif expected == floor - 1 then there = root
  elseif expected < floor then there = ARGV[7]
  elseif expected < version then
    local entry = redis.call('XRANGE', log, expected .. '-0', expected .. '-0')[1]
    for i = 1, entry and #entry[2] or 0, 2 do
      if entry[2][i] == 'c' then there = entry[2][i + 1] end
    end
  end
  if there ~= ARGV[7] then return 'diverged ' .. version end
end

-- A time never goes back within a log, whatever the clocks of its writers do.
local time = ARGV[3]
if state[6] and tonumber(state[6]) > now then time = state[6] end

local function guard(id, where, digest)
  return string.sub(redis.sha1hex(id .. ' ' .. where .. ' ' .. digest), 1, 8)
end

-- First examine all: the drafts that are new, and where each goes.
local last, first, at, index = version, chain, 9, 0
local fresh, places, new = {}, {}, {}
while at <= #ARGV do
  local final = at + 8 + tonumber(ARGV[at + 8])
  local draft = {at = at, final = final, digest = ARGV[at + 2], take = ARGV[at + 3], retracts = tonumber(ARGV[at + 5])}
  local seen
  for i = at + 9, final do
    local row = new[ARGV[i]] or redis.call('HGET', ids, ARGV[i])
    if not row and state[7] and redis.call('HEXISTS', ids, 'e:' .. redis.sha1hex(state[7] .. ' ' .. ARGV[i])) == 1 then
      return 'erased ' .. index .. ' ' .. (i - at - 9)
    end
    if row then
      local where, check, digest = string.match(row, '^(%d+) (%x+) (.*)$')
      if not where or check ~= guard(ARGV[i], where, digest) then return 'damaged ' .. index end
      if digest ~= draft.digest or (seen and seen ~= where) then return 'clash ' .. index end
      seen = where
    end
  end
  if seen then
    places[#places + 1] = seen .. ' 0 -'
  else
    local sum = '-'
    if draft.take ~= '' then
      local record = redis.call('HGET', records, draft.take)
      if not record then return 'missing ' .. index end
      local expires, taken, size = struct.unpack('<dI4B', record)
      if expires <= now or taken > 0 then return 'missing ' .. index end
      draft.expires, draft.request = expires, string.sub(record, 14, 13 + size)
      sum = string.sub(record, 14 + size, 45 + size)
      draft.taken = string.sub(record, 46 + size)
      if ARGV[at + 4] ~= '' and ARGV[at + 4] ~= sum then return 'stale' end
    end
    draft.revises = ARGV[at + 7] ~= ''
    if draft.retracts > 0 or draft.revises then
      local base = tonumber(ARGV[at + 6])
      if floor > base + 1 or (base > 0 and redis.call('HEXISTS', snapshots, base) == 0) then return 'trimmed' end
      draft.first = draft.revises and base + 1 or draft.retracts
    end
    last = last + 1
    if last > 4294967294 then return 'full' end
    draft.version = last
    chain = redis.sha1hex(table.concat({chain, last, time, ARGV[at + 1], sum, ARGV[at + 5]}, ' '))
    draft.chain = chain
    for i = at + 9, final do
      new[ARGV[i]] = last .. ' ' .. guard(ARGV[i], last, draft.digest) .. ' ' .. draft.digest
    end
    fresh[#fresh + 1] = draft
    places[#places + 1] = last .. ' 1 ' .. chain
  end
  at, index = final + 1, index + 1
end

-- Then write: from here on nothing is refused.
for _, draft in ipairs(fresh) do
  local fields = {'b', ARGV[draft.at], 'a', time, 'c', draft.chain}
  if draft.taken then
    fields[#fields + 1] = 't'
    fields[#fields + 1] = draft.taken
    for i = 9, #KEYS do redis.call('ZREM', KEYS[i], draft.take) end
    if draft.request == '' then
      redis.call('HDEL', records, draft.take)
      redis.call('ZREM', expiry, draft.take)
    else -- that it was there is kept for repeats, until it would have expired
      redis.call('HSET', records, draft.take,
        struct.pack('<dI4B', draft.expires, draft.version, #draft.request) .. draft.request .. string.rep('0', 32))
    end
  end
  if draft.retracts > 0 then
    fields[#fields + 1] = 'r'
    fields[#fields + 1] = draft.retracts
  end
  redis.call('XADD', log, draft.version .. '-0', unpack(fields))
  local names = {}
  for i = draft.at + 9, draft.final do
    redis.call('HSET', ids, ARGV[i], new[ARGV[i]])
    names[#names + 1] = 'i'
    names[#names + 1] = ARGV[i]
  end
  if #names > 0 then redis.call('XADD', order, draft.version .. '-0', unpack(names)) end
  if draft.retracts > 0 then redis.call('HSET', retracted, draft.retracts, draft.version) end
  if draft.revises then
    redis.call('HSET', meta, 'revisions', (redis.call('HGET', meta, 'revisions') or '') .. ' ' .. draft.version)
  end
  if draft.first then
    redis.call('HSET', meta, 'retracted', draft.version)
    for _, old in ipairs(redis.call('HKEYS', snapshots)) do
      if tonumber(old) >= draft.first then
        local upload, parts = string.match(redis.call('HGET', snapshots, old), '(%S+) (%d+)$')
        for i = 0, tonumber(parts) - 1 do redis.call('UNLINK', ARGV[4] .. upload .. ':' .. i) end
        redis.call('HDEL', snapshots, old)
      end
    end
  end
end
if last > version then
  redis.call('HSET', meta, 'version', last, 'chain', chain, 'at', time, 'root', root)
  redis.call('PUBLISH', ARGV[2], 'log ' .. ARGV[1] .. ' ' .. last)
elseif ARGV[8] == '1' then
  redis.call('HSET', meta, 'version', last) -- what replicas must confirm needs a write of this connection
end
return 'placed ' .. first .. ' ' .. time .. ' ' .. table.concat(places, ' ')
