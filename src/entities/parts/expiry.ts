/** RFC 3339 time of a request body. */
export const expirySchema = { type: 'string', format: 'date-time', maxLength: 64 } as const
