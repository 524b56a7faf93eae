import type { RouterFact } from '../entities/fields.ts'
import type { Json } from '../lib/canonical-json.ts'
import type { RouterStatus } from '../ports/router-status.ts'

/**
 * What is shown of a router, and filtered by; the empty value of each while it is connected
 * nowhere.
 */
export function routerFact(status: RouterStatus | null, fact: RouterFact): Json {
  switch (fact) {
    case 'isOnline':
      return status !== null
    case 'hostname':
      return status?.hostname ?? ''
    case 'supportedProtocols':
      return status === null ? {} : { ...status.protocols }
    case 'syncStatus':
      if (status === null) return 'SYNC_UNKNOWN'
      // It is told of the model once it has said where it listens.
      return status.hostname === '' ? 'SYNC_HELLO' : 'SYNC_DONE'
    case 'versionInfo':
      return status === null ? null : { ...status.version }
  }
}
