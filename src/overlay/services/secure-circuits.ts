import type {
  Application,
  CircuitEnd,
  LocalCircuit,
  LocalCircuits,
} from '../circuits/circuit-ends.ts'
import type { CircuitWish } from '../circuits/circuit-source.ts'
import { appDataBytes, type ToldAppData } from './app-data.ts'
import { newKeyPair, SecureStream, type SessionKeys, sessionKeys } from './secure-stream.ts'
import { peerDataKey } from '../../channel/messages/peer-data.ts'

export interface SecureCircuitsParts extends Pick<LocalCircuits, 'open'> {
  /** Told to the host of the service. */
  readonly appData: ToldAppData
  /** Instance of the service that is dialed; '' for any. */
  readonly instanceId: string
  /** Whether the service requires encryption, as of now. */
  readonly isEncrypted: () => boolean
}

/** Circuits of one offered or intercepted service: encrypted where the service requires it. */
export class SecureCircuits {
  readonly #parts: SecureCircuitsParts
  /** Circuits that are created and not opened yet, by id; null: in the clear. */
  readonly #keys = new Map<string, SessionKeys | null>()

  constructor(parts: SecureCircuitsParts) {
    this.#parts = parts
  }

  /** The circuit that it is for is opened here once it is there. */
  wish(): CircuitWish {
    const { instanceId, isEncrypted } = this.#parts
    const own = isEncrypted() ? newKeyPair() : null
    const appData = appDataBytes(this.#parts.appData)
    const peerData = new Map<number, Uint8Array>([[peerDataKey.appData, appData]])
    if (own !== null) peerData.set(peerDataKey.publicKey, own.publicKey)
    return {
      instanceId,
      peerData,
      take: ({ id }, told) => {
        const theirs = told.get(peerDataKey.publicKey)
        if (own !== null && theirs === undefined) {
          return 'the service requires encryption, and its host has no key'
        }
        const isSecure = own !== null && theirs !== undefined
        this.#keys.set(id, isSecure ? sessionKeys('client', own, theirs) : null)
        return null
      },
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
