/** Whether the text can be a session token: a string that fits into an HTTP header. */
export function isSessionToken(text: unknown): text is string {
  // @guard answers-of-a-hostile-server--token
  return typeof text === 'string' && /^[\x21-\x7e]{1,65536}$/.test(text)
}
