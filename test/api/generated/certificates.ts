import {
  createIssuingAuthority,
  createRootAuthority,
  validityFrom,
} from '../../../src/pki/authority.ts'
import { uniqueText } from './schemas.ts'

const DAY_MS = 24 * 60 * 60 * 1000

/** A certificate authority that nobody has used before. */
export async function authorityPem(): Promise<string> {
  const validity = validityFrom(Date.now(), DAY_MS)
  return (await createRootAuthority({ commonName: uniqueText('authority'), validity }))
    .certificatePem
}

/** A certificate whose key may sign, of an authority that nobody has used before. */
export async function certificatePem(): Promise<string> {
  const validity = validityFrom(Date.now(), DAY_MS)
  const root = await createRootAuthority({ commonName: uniqueText('root'), validity })
  const commonName = uniqueText('signer')
  return (await createIssuingAuthority({ commonName, root, validity })).certificatePem
}
