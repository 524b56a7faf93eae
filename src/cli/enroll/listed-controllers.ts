import { controllersIn } from '../../tunnel/router-addresses.ts'
import { objectShape, textShape } from '../client/answer-shape.ts'
import { ApiClient } from '../client/api-client.ts'
import type { ClientKey } from './enrollment-server.ts'

const CLIENT_API = '/edge/client/v1'

/**
 * Logs in with the new certificate to list the controllers of the cluster, and logs out again.
 * @param origin of the controller that enrolled the identity.
 * @returns `https://host:port` of each, that one first.
 * @throws {CommandFailure} one sentence.
 */
export async function listControllers(
  origin: string,
  caPem: string,
  client: ClientKey,
): Promise<readonly string[]> {
  let token: string | null = null
  const api = new ApiClient({
    controllers: [origin],
    caPem,
    client,
    token: () => token,
    logInAgain: 'enroll the identity again',
    isImpatient: true,
  })
  const { data } = await api.ask(
    {
      method: 'POST',
      path: '/authenticate?method=cert',
      api: CLIENT_API,
      body: {},
      showsSession: false,
    },
    objectShape<{ token: string }>({ token: textShape }),
  )
  token = data.token
  try {
    const listed = await api.ask({ method: 'GET', path: '/controllers?limit=100', api: CLIENT_API })
    return [...new Set([origin, ...controllersIn(listed.data)])]
  } finally {
    await api.ask({ method: 'DELETE', path: '/current-api-session', api: CLIENT_API })
  }
}
