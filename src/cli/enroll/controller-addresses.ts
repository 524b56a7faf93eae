import { readControllerOrigins } from '../../tunnel/edge-router-addresses.ts'
import { CertificateApiClient } from '../client/certificate-api-client.ts'
import type { EnrolledIdentity } from './identity-file.ts'

const ANSWER_MS_MAX = 10_000
const LOG_OUT_MS_MAX = 2_000

/**
 * Logs in as the new identity and requests the list of controllers.
 * @returns their addresses, beginning with the identity's controller.
 * @throws {Error} whose message is a clause to be used within a sentence, for example if the
 * identity needs a second factor.
 */
export async function fetchControllerAddresses(
  identity: EnrolledIdentity,
): Promise<readonly string[]> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('no answer in time')), ANSWER_MS_MAX)
  try {
    return await Promise.race([late, askedFor(identity)])
  } finally {
    clearTimeout(timer)
  }
}

async function askedFor(identity: EnrolledIdentity): Promise<readonly string[]> {
  const { origin } = identity
  const api = new CertificateApiClient({ ...identity, origins: [origin] })
  const { lacks } = await api.logIn()
  try {
    if (lacks !== null) throw new Error('the identity needs a second factor')
    const found = readControllerOrigins(await api.get('/controllers'))
    return [origin, ...found.filter((each) => each !== origin)]
  } finally {
    // A failed log-out is ignored, because the session expires by itself.
    await api.logOut(LOG_OUT_MS_MAX).catch(() => undefined)
  }
}
