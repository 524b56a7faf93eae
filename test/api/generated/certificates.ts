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
 * A different validity for each certificate, in whole seconds, so that a test also notices a change
 * by the times.
 */
function nextValidity(): ValidityPeriod {
  made += 1
  return validityStartingAt(startMs - made * 1000, DAY_MS)
}

/** A certificate authority that no other test uses. */
export async function authorityPem(): Promise<string> {
  const validity = nextValidity()
  return (await createRootAuthority({ commonName: uniqueText('authority'), validity }))
    .certificatePem
}

/** A certificate whose key may sign, from an authority that no other test uses. */
export async function certificatePem(): Promise<string> {
  const validity = nextValidity()
  const root = await createRootAuthority({ commonName: uniqueText('root'), validity })
  const commonName = uniqueText('signer')
  return (await createIssuingAuthority({ commonName, root, validity })).certificatePem
}
