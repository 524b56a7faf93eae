import { fabricService } from '../../entities/kinds/fabric-service.ts'
import { normalizeBody } from '../../entities/normalize-body.ts'
import type { Preparer } from './preparer.ts'

/** A service created with the fabric API is not visible to identities. */
export const prepareFabricService: Preparer = (_call, mode, body) => {
  const prepared = normalizeBody(fabricService, mode, body)
  if (mode !== 'create') return prepared
  return { ...prepared, fields: { ...prepared.fields, isFabricOnly: true } }
}
