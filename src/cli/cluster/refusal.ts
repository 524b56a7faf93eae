interface Refusal {
  readonly code?: unknown
  readonly message?: unknown
  readonly cause?: {
    readonly message?: unknown
    readonly field?: unknown
    readonly reason?: unknown
  }
}

/** Where the sentence of the API is for programs, which ask again by an id. */
const remedies: Readonly<Record<string, string>> = {
  CLUSTER_NO_LEADER:
    "the cluster has no leader; nothing was changed; 'flotilla cluster status' names the controllers to start",
  OUTCOME_UNKNOWN:
    "the leader was lost before it answered: see 'flotilla cluster status', then run the same command again",
}

/** The sentence of an answer in the API's envelope. */
export function refusalOf(status: number, body: unknown): string {
  const error = errorIn(body)
  if (typeof error?.message !== 'string')
    return `unexpected response status ${status}; is it a controller?`
  if (error.code === 'UNAUTHORIZED') return 'the session is not valid; log in again'
  const remedy = remedies[String(error.code)]
  if (remedy !== undefined) return remedy
  const { field, reason, message } = error.cause ?? {}
  const detail = typeof field === 'string' ? `${field}: ${String(reason)}` : message
  return typeof detail === 'string' && detail !== '' ? detail : error.message
}

/** '' where it is no refusal of a controller. */
export function errorCodeIn(body: unknown): string {
  const code = errorIn(body)?.code
  return typeof code === 'string' ? code : ''
}

function errorIn(body: unknown): Refusal | undefined {
  return (body as { readonly error?: Refusal } | null)?.error
}
