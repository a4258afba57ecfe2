-- Before every script: nothing is done in a store that is another one by now (flushed, restored, upgraded, another database).
-- The last of ARGV is what the last of KEYS must hold; if it is empty, there is no such key.
local identity = table.remove(ARGV)
if identity ~= '' and redis.call('GET', table.remove(KEYS)) ~= identity then
  return redis.error_reply('ANOTHERSTORE was flushed, replaced or upgraded by a newer release while in use')
end
