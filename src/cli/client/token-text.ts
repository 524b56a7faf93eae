/** A token as a header can hold it; nothing else can be the token of a session. */
export function isToken(text: unknown): text is string {
  // @guard answers-of-a-hostile-server--token
  return typeof text === 'string' && /^[\x21-\x7e]{1,65536}$/.test(text)
}
