-- Write a log anew with checksums in the place of bodies, some entries at each call: what is deleted from a stream stays in
-- its memory. The last call puts the copy in the place of the log, and lets go of all else that is to be erased.
-- KEYS: meta, log, order, copy, copied, ids, retracted, outcomes, records, expiry, due, and others that have keys of records
-- ARGV: who, a new salt, entries of a call, seconds that a copy stays if nobody goes on with it,
--       number of entries, then for each: version, its checksums, 1 if it is to be forgotten as well (not what retracted it)
--       number of records and their keys, number of further ids and these
-- Replies "done", "more", "busy" (another process erases) or "closed".
local meta, log, order, copy, copied, ids, retracted, outcomes, records = unpack(KEYS)
local limit, stays = tonumber(ARGV[3]), ARGV[4]
local state = redis.call('HMGET', meta, 'closed', 'copying', 'salt', 'floor', 'version')
if state[1] then return 'closed' end
local salt = state[3] or ARGV[2]
if state[2] ~= ARGV[1] then
  if redis.call('EXISTS', copy) == 1 or redis.call('EXISTS', copied) == 1 then return 'busy' end
  redis.call('HSET', meta, 'copying', ARGV[1], 'salt', salt)
end

local erased, forgotten, lists, at = {}, {}, {}, 6
for i = 1, tonumber(ARGV[5]) do
  erased[ARGV[at] .. '-0'] = ARGV[at + 1]
  if ARGV[at + 2] == '1' then forgotten[ARGV[at] .. '-0'] = ARGV[at] end
  at = at + 3
end
for i = 1, 2 do
  lists[i] = {}
  for j = at + 1, at + tonumber(ARGV[at]) do lists[i][#lists[i] + 1] = ARGV[j] end
  at = at + #lists[i] + 1
end
local function tomb(id) return 'e:' .. redis.sha1hex(salt .. ' ' .. id) end

-- Copy what comes after the end of a copy; whether that is all there is.
local function go_on(from, to, change)
  local last = redis.call('XREVRANGE', to, '+', '-', 'COUNT', 1)[1]
  local page = redis.call('XRANGE', from, last and last[1] or '-', '+', 'COUNT', limit + 1)
  for _, entry in ipairs(page) do
    if not last or entry[1] ~= last[1] then redis.call('XADD', to, entry[1], unpack(change(entry[1], entry[2]))) end
  end
  redis.call('EXPIRE', to, stays)
  return #page <= limit
end
local function without_body(id, fields)
  if not erased[id] then return fields end
  local kept = {'b', '', 'e', erased[id]}
  for i = 1, #fields, 2 do
    if fields[i] == 'a' or fields[i] == 'c' or fields[i] == 'r' then
      kept[#kept + 1], kept[#kept + 2] = fields[i], fields[i + 1]
    end
  end
  return kept
end
local function without_ids(id, fields)
  for i = 2, forgotten[id] and #fields or 0, 2 do
    if string.sub(fields[i], 1, 2) ~= 'e:' then fields[i] = tomb(fields[i]) end
  end
  return fields
end
local whole = go_on(log, copy, without_body)
if not go_on(order, copied, without_ids) or not whole then return 'more' end

local function bury(id, version)
  local guard = string.sub(redis.sha1hex(tomb(id) .. ' ' .. version .. ' '), 1, 8)
  redis.call('HDEL', ids, id)
  redis.call('HSET', ids, tomb(id), version .. ' ' .. guard .. ' ')
end
for id, version in pairs(forgotten) do
  local names = redis.call('XRANGE', order, id, id)[1]
  for i = 2, names and #names[2] or 0, 2 do
    if string.sub(names[2][i], 1, 2) ~= 'e:' then bury(names[2][i], version) end
  end
  redis.call('HDEL', outcomes, version)
end
for _, key in ipairs(lists[1]) do
  redis.call('HDEL', records, key)
  for i = 10, #KEYS do redis.call('ZREM', KEYS[i], key) end
  lists[2][#lists[2] + 1] = key
end
for _, id in ipairs(lists[2]) do bury(id, state[5] or 0) end
for _, pair in ipairs({{copy, log}, {copied, order}}) do
  if redis.call('EXISTS', pair[1]) == 1 then
    redis.call('RENAME', pair[1], pair[2])
    redis.call('PERSIST', pair[2])
  end
end
redis.call('XTRIM', log, 'MINID', (state[4] or 1) .. '-0') -- what was let go while it was copied
redis.call('HDEL', meta, 'copying')
return 'done'
