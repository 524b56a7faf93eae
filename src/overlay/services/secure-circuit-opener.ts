import type {
  CircuitApplication,
  CircuitEndpoint,
  LocalCircuit,
  LocalCircuits,
} from '../circuits/circuit-endpoint.ts'
import type { CircuitData } from '../circuits/circuit-source.ts'
import { appDataBytes, type WireAppData } from './app-data.ts'
import { newKeyPair, SecureStream, type SessionKeys, deriveSessionKeys } from './secure-stream.ts'
import { peerDataKey } from '../../channel/messages/peer-data.ts'

interface SecureCircuitOpenerDeps extends Pick<LocalCircuits, 'open'> {
  /** Parameters that the host of the service receives. */
  readonly appData: WireAppData
  /** Service instance to dial; '' for any. */
  readonly instanceId: string
  /** Returns whether the service requires encryption at this moment. */
  readonly isEncrypted: () => boolean
}

/**
 * Opens circuits to one service that a tunnel offers or intercepts, with encryption if the service
 * requires it.
 */
export class SecureCircuitOpener {
  readonly #deps: SecureCircuitOpenerDeps
  /**
   * Keys of circuits that are created and not opened yet, by circuit ID; null for a circuit without
   * encryption.
   */
  readonly #keys = new Map<string, SessionKeys | null>()

  constructor(deps: SecureCircuitOpenerDeps) {
    this.#deps = deps
  }

  /** Data for a new circuit; the circuit must then be opened with `open`. */
  circuitData(): CircuitData {
    const { instanceId, isEncrypted } = this.#deps
    const own = isEncrypted() ? newKeyPair() : null
    const appData = appDataBytes(this.#deps.appData)
    const peerData = new Map<number, Uint8Array>([[peerDataKey.appData, appData]])
    if (own !== null) peerData.set(peerDataKey.publicKey, own.publicKey)
    return {
      instanceId,
      peerData,
      take: ({ id }, theirData) => {
        const theirs = theirData.get(peerDataKey.publicKey)
        if (own !== null && theirs === undefined) {
          return 'the service requires encryption, and its host has no key'
        }
        const isSecure = own !== null && theirs !== undefined
        this.#keys.set(id, isSecure ? deriveSessionKeys('client', own, theirs) : null)
        return null
      },
    }
  }

  open(circuit: LocalCircuit, application: CircuitApplication): CircuitEndpoint {
    const keys = this.#keys.get(circuit.id)
    this.#keys.delete(circuit.id)
    if (keys === undefined) throw new Error('a circuit is opened that was not asked for here')
    if (keys === null) return this.#deps.open(circuit, application)
    const secure = new SecureStream(application, keys)
    secure.start(this.#deps.open(circuit, secure))
    return secure
  }
}
