import type {
  Application,
  CircuitEnd,
  LocalCircuit,
  LocalCircuits,
} from '../forward/circuit-ends.ts'
import type { CircuitExchange } from '../listen/circuit-requests.ts'
import { proxyAppData } from './app-data.ts'
import type { TunnelProtocol } from './host-config.ts'
import { newKeyPair, SecureStream, type SessionKeys, sessionKeys } from './secure-stream.ts'
import { createTunnelCircuitMessage, peerKey, readCreatedCircuit } from './tunnel-messages.ts'

/** The place where clients of an offered service connect, as its hosts read it. */
export interface EntryPlace {
  readonly protocol: TunnelProtocol
  readonly address: string
  readonly port: number
}

export interface SecureCircuitsParts extends Pick<LocalCircuits, 'open'> {
  readonly place: EntryPlace
  /** Whether the service requires encryption, as of now. */
  readonly isEncrypted: () => boolean
}

/** Circuits of one offered service: encrypted where the service requires it. */
export class SecureCircuits {
  readonly #parts: SecureCircuitsParts
  /** Circuits that are created and not opened yet, by id; null: in the clear. */
  readonly #keys = new Map<string, SessionKeys | null>()

  constructor(parts: SecureCircuitsParts) {
    this.#parts = parts
  }

  exchange(service: string): CircuitExchange {
    const { place, isEncrypted } = this.#parts
    const own = isEncrypted() ? newKeyPair() : null
    const appData = proxyAppData(place.protocol, place.address, place.port)
    const peerData = new Map<number, Uint8Array>([[peerKey.appData, appData]])
    if (own !== null) peerData.set(peerKey.publicKey, own.publicKey)
    let keys: SessionKeys | null = null
    return {
      message: createTunnelCircuitMessage(service, peerData),
      read: (answer) => {
        const created = readCreatedCircuit(answer)
        if (typeof created === 'string' || own === null) return created
        const theirs = created.peerData.get(peerKey.publicKey)
        if (theirs === undefined) return 'the service requires encryption, and its host has no key'
        keys = sessionKeys('client', own, theirs)
        return created
      },
      onCreated: ({ id }) => this.#keys.set(id, keys),
    }
  }

  open(circuit: LocalCircuit, application: Application): CircuitEnd {
    const keys = this.#keys.get(circuit.id)
    this.#keys.delete(circuit.id)
    if (keys === undefined) throw new Error('a circuit is opened that was not asked for here')
    if (keys === null) return this.#parts.open(circuit, application)
    const secure = new SecureStream(application, keys)
    secure.start(this.#parts.open(circuit, secure))
    return secure
  }
}
