/** An error that the server answers, in Redis' own words, without the script's name and line that Redis may add. */
export class ServerError extends Error {
  override readonly name = "ReplyError";
}

export const wrongType = "WRONGTYPE Operation against a key holding the wrong kind of value";
export const wrongArguments = "ERR Wrong number of args calling Redis command from script";
export const unknownCommand = "ERR Unknown Redis command called from script";
export const wrongExpiry = "ERR invalid expire time in 'set' command";
export const readOnly = "READONLY You can't write against a read only replica.";
export const notAsked = "READONLY A replica is not asked for locks";
export const noChannelPermission =
  "ERR The user executing the script can't publish to the channel mentioned in the command";
