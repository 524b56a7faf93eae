import {
  createIssuingAuthority,
  createRootAuthority,
  type ValidityPeriod,
  validityStartingAt,
} from '../../../src/pki/authority/authority.ts'
import { uniqueText } from './schemas.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const startMs = Date.now()
let made = 0

/**
 * Another one for each certificate, in whole seconds, so that a change of it shows in its times
 * too.
 */
function nextValidity(): ValidityPeriod {
  made += 1
  return validityStartingAt(startMs - made * 1000, DAY_MS)
}

/** A certificate authority that nobody has used before. */
export async function authorityPem(): Promise<string> {
  const validity = nextValidity()
  return (await createRootAuthority({ commonName: uniqueText('authority'), validity }))
    .certificatePem
}

/** A certificate whose key may sign, of an authority that nobody has used before. */
export async function certificatePem(): Promise<string> {
  const validity = nextValidity()
  const root = await createRootAuthority({ commonName: uniqueText('root'), validity })
  const commonName = uniqueText('signer')
  return (await createIssuingAuthority({ commonName, root, validity })).certificatePem
}
