import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

import type { Client } from '../process/support/client.ts'

async function next(socket: Socket): Promise<string> {
  const ended = once(socket, 'close').then(() => {
    throw new Error('the connection was closed')
  })
  ended.catch(() => undefined)
  const [read] = (await Promise.race([once(socket, 'data'), ended])) as [Buffer]
  return read.toString()
}

/** Response of a service over TCP. */
export async function echoed(host: string, port: number, first = ''): Promise<string> {
  const socket: Socket = connect({ host, port })
  socket.setTimeout(5000, () => socket.destroy(new Error('no answer')))
  try {
    await once(socket, 'connect')
    if (first !== '') {
      socket.write(first)
      const answer = await next(socket)
      if (!answer.includes('"scc":true')) throw new Error(answer.trim())
    }
    socket.write('hello')
    return await next(socket)
  } finally {
    socket.destroy()
  }
}

export async function echoedDatagram(host: string, port: number): Promise<string> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  const timer = setTimeout(() => socket.emit('error', new Error('no answer')), 5000)
  try {
    socket.send('hello', port, host)
    const [read] = (await once(socket, 'message')) as [Buffer]
    return read.toString()
  } finally {
    clearTimeout(timer)
    socket.close()
  }
}

/** Creates all records that the test needs at the controllers. */
export class DriveRecords {
  readonly #client: Client
  readonly #services = new Map<string, string>()

  constructor(client: Client) {
    this.#client = client
  }

  async router(name: string): Promise<{ readonly id: string; readonly jwt: string }> {
    const id = await this.#post('edge-routers', { name, isTunnelerEnabled: true })
    const { enrollmentJwt } = (await this.#get(`edge-routers/${id}`)) as { enrollmentJwt: string }
    return { id, jwt: enrollmentJwt }
  }

  async service(
    name: string,
    host: { readonly protocol: string },
    addresses: readonly string[],
    port: number,
    encryptionRequired = true,
  ): Promise<void> {
    const portRanges = [{ low: port, high: port }]
    const intercept = { protocols: [host.protocol], addresses, portRanges }
    const configs = [
      await this.#config('host.v1', name, host),
      await this.#config('intercept.v1', name, intercept),
    ]
    this.#services.set(name, await this.#post('services', { name, encryptionRequired, configs }))
  }

  /**
   * Policies that permit each of these identities to host or dial all services. @returns the ID of
   * the dial policy.
   */
  async policies(
    ids: ReadonlyMap<string, string>,
    hosts: readonly string[],
    clients: readonly string[],
  ): Promise<string> {
    const all = { semantic: 'AnyOf', serviceRoles: ['#all'] }
    let dialPolicy = ''
    for (const [type, names] of [
      ['Bind', hosts],
      ['Dial', clients],
    ] as const) {
      const identityRoles = names.map((name) => `@${ids.get(name)}`)
      dialPolicy = await this.#post('service-policies', { ...all, name: type, type, identityRoles })
    }
    const edgeRouterRoles = ['#all']
    await this.#post('service-edge-router-policies', { ...all, name: 'all', edgeRouterRoles })
    return dialPolicy
  }

  async remove(name: string): Promise<void> {
    await this.delete(`services/${this.#services.get(name)}`)
  }

  async delete(path: string): Promise<void> {
    const { status, text } = await this.#client.request('DELETE', `/edge/management/v1/${path}`)
    if (status !== 200) throw new Error(`${path} was not removed: ${text}`)
  }

  /** Creates an identity with an enrollment token. */
  async identity(name: string): Promise<{ readonly id: string; readonly jwt: string }> {
    const wanted = { name, type: 'Device', isAdmin: false, enrollment: { ott: true } }
    const id = await this.#post('identities', wanted)
    const { enrollment } = (await this.#get(`identities/${id}`)) as {
      enrollment: { ott: { jwt: string } }
    }
    return { id, jwt: enrollment.ott.jwt }
  }

  /** Policies that permit all identities and services to use all edge routers. */
  async edgePolicies(): Promise<void> {
    const edgeRouterRoles = ['#all']
    await this.#post('edge-router-policies', {
      name: 'all',
      semantic: 'AnyOf',
      identityRoles: ['#all'],
      edgeRouterRoles,
    })
  }

  /** Number of terminators at the controllers. */
  async terminators(): Promise<number> {
    return ((await this.#get('terminators?limit=500')) as unknown[]).length
  }

  async #config(type: string, service: string, data: object): Promise<string> {
    const filter = encodeURIComponent(`name = "${type}"`)
    const [found] = (await this.#get(`config-types?filter=${filter}`)) as { id: string }[]
    const name = `${type} of ${service}`
    return await this.#post('configs', { name, configTypeId: found?.id, data })
  }

  async #get(path: string): Promise<unknown> {
    const { status, text, body } = await this.#client.request('GET', `/edge/management/v1/${path}`)
    if (status !== 200) throw new Error(`${path}: ${text}`)
    return body.data
  }

  async #post(path: string, body: object): Promise<string> {
    const answer = await this.#client.request('POST', `/edge/management/v1/${path}`, { body })
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
    return (answer.body.data as { readonly id: string }).id
  }
}
