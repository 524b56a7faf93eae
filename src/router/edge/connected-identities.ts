import type { ControlConnection } from '../controllers/control-connection.ts'
import type { ClientChannel } from './client-channel.ts'
import { connectEventsMessage, type IdentityConnections } from '../../channel/messages/clients.ts'

const TELL_MS = 1000
const IDENTITIES_AT_ONCE = 1000

/**
 * Identities with a channel to this router. Reports to controllers when an identity connects and
 * disconnects.
 */
export class ConnectedIdentities {
  readonly #connections: () => readonly ControlConnection[]
  readonly #byIdentity = new Map<string, Set<ClientChannel>>()
  /** Identities that have connected or disconnected since the last report. */
  readonly #changed = new Set<string>()
  #timer: NodeJS.Timeout | null = null

  constructor(connections: () => readonly ControlConnection[]) {
    this.#connections = connections
  }

  channelsOf(identityId: string): number {
    return this.#byIdentity.get(identityId)?.size ?? 0
  }

  add(client: ClientChannel): void {
    const { identityId } = client.client.session
    const channels = this.#byIdentity.get(identityId) ?? new Set()
    this.#byIdentity.set(identityId, channels.add(client))
    this.#reportSoon(identityId)
  }

  remove(client: ClientChannel): void {
    const { identityId } = client.client.session
    const channels = this.#byIdentity.get(identityId)
    channels?.delete(client)
    if (channels?.size !== 0) return
    this.#byIdentity.delete(identityId)
    this.#reportSoon(identityId)
  }

  /**
   * Sends the full list of connected identities to a controller that has just connected. It
   * replaces all earlier reports.
   */
  reportAll(connection: ControlConnection): void {
    const all = [...this.#byIdentity.keys()].map((id) => this.#connectsOf(id))
    connection.channel.send(connectEventsMessage(all.slice(0, IDENTITIES_AT_ONCE), true))
    for (let at = IDENTITIES_AT_ONCE; at < all.length; at += IDENTITIES_AT_ONCE) {
      const some = all.slice(at, at + IDENTITIES_AT_ONCE)
      connection.channel.send(connectEventsMessage(some, false))
    }
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  #reportSoon(identityId: string): void {
    this.#changed.add(identityId)
    this.#timer ??= setTimeout(() => {
      this.#timer = null
      this.#report()
    }, TELL_MS)
  }

  #report(): void {
    const changed = [...this.#changed].map((id) => this.#connectsOf(id))
    this.#changed.clear()
    for (let at = 0; at < changed.length; at += IDENTITIES_AT_ONCE) {
      const message = connectEventsMessage(changed.slice(at, at + IDENTITIES_AT_ONCE), false)
      for (const { channel } of this.#connections()) channel.send(message)
    }
  }

  #connectsOf(identityId: string): IdentityConnections {
    const channels = [...(this.#byIdentity.get(identityId) ?? [])]
    return {
      identityId,
      isConnected: channels.length > 0,
      connects: channels.map(({ connectedAtMs, remoteAddress, localAddress }) => ({
        atMs: connectedAtMs,
        from: remoteAddress,
        to: localAddress,
      })),
    }
  }
}
