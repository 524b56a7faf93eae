import { sourceOf } from '../../lib/bounds/source.ts'
import type { RequestContext } from '../call.ts'

/** Room is shared by identities, and by sources where nobody has said who it is. */
export function sharerOf({ caller, address }: Pick<RequestContext, 'caller' | 'address'>): string {
  return caller === null ? `from ${sourceOf(address)}` : caller.identity.id
}
