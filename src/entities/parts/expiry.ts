/** Schema of an expiry time (RFC 3339) in a request body. */
export const expirySchema = { type: 'string', format: 'date-time', maxLength: 64 } as const
