/** A session, circuit or link that is open now. */
export type LiveDataRow = Readonly<Record<string, unknown>> & { readonly id: string }
