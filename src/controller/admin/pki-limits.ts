/** Of a certificate for somebody outside: browsers refuse longer ones. */
export const ISSUED_DAYS_MAX = 397
