import sodium, { type StateAddress } from 'libsodium-wrappers'

import type { CircuitApplication, CircuitEndpoint } from '../circuits/circuit-endpoint.ts'
import type { PayloadContent } from '../../channel/messages/payload.ts'

const FIN = 1
const NONE = new Uint8Array()

/**
 * The dialing side is the client of the key exchange, and the host of the service is the server.
 */
type KeyRole = 'client' | 'server'

export interface KeyPair {
  readonly publicKey: Uint8Array
  readonly privateKey: Uint8Array
}

/** Keys of one encrypted circuit, one for each direction. */
export interface SessionKeys {
  /** Decrypts received messages. */
  readonly receiving: Uint8Array
  /** Encrypts sent messages. */
  readonly sending: Uint8Array
}

/** Loads the cryptographic library; required before all other functions of this file. */
export function loadCryptoLibrary(): Promise<void> {
  return sodium.ready
}

/**
 * A new key pair for the end-to-end encryption of one circuit, or of all circuits of one
 * terminator.
 */
export function newKeyPair(): KeyPair {
  const { publicKey, privateKey } = sodium.crypto_kx_keypair()
  return { publicKey, privateKey }
}

/** @throws {Error} when the peer's key is invalid. */
export function deriveSessionKeys(role: KeyRole, own: KeyPair, peerKey: Uint8Array): SessionKeys {
  if (peerKey.length !== sodium.crypto_kx_PUBLICKEYBYTES) {
    throw new Error(`the public key of the peer has ${peerKey.length} bytes`)
  }
  const exchange =
    role === 'client' ? sodium.crypto_kx_client_session_keys : sodium.crypto_kx_server_session_keys
  const { sharedRx, sharedTx } = exchange(own.publicKey, own.privateKey, peerKey)
  return { receiving: sharedRx, sending: sharedTx }
}

/**
 * Encryption layer between an application and its circuit endpoint; implements the interfaces of
 * both. In each direction the first payload contains the stream header, and each later payload with
 * a body contains one encrypted message. Empty payloads are not encrypted. Payloads are never split
 * or joined. A message that was modified or repeated, or before which a message is missing, cannot
 * be decrypted; the circuit then ends.
 */
export class SecureStream implements CircuitApplication, CircuitEndpoint {
  readonly #application: CircuitApplication
  readonly #keys: SessionKeys
  readonly #sender: StateAddress
  readonly #header: Uint8Array
  #receiver: StateAddress | null = null
  #end: CircuitEndpoint | null = null

  constructor(application: CircuitApplication, keys: SessionKeys) {
    this.#application = application
    this.#keys = keys
    const { state, header } = sodium.crypto_secretstream_xchacha20poly1305_init_push(keys.sending)
    this.#sender = state
    this.#header = header
  }

  get circuitId(): string {
    return this.#end?.circuitId ?? ''
  }

  get isClosed(): boolean {
    return this.#end?.isClosed ?? false
  }

  /** Sends the stream header, which must precede all data of the application. */
  start(end: CircuitEndpoint): void {
    this.#end = end
    end.send({ body: this.#header, edgeFlags: 0, traceId: null })
  }

  send(piece: PayloadContent): boolean {
    if (this.#end === null) return false
    const { body } = piece
    // An empty payload contains only flags and is not encrypted.
    if (body.length === 0) return this.#end.send(piece)
    const sealed = sodium.crypto_secretstream_xchacha20poly1305_push(
      this.#sender,
      body,
      null,
      sodium.crypto_secretstream_xchacha20poly1305_TAG_MESSAGE,
    )
    return this.#end.send({ ...piece, body: sealed })
  }

  finish(): void {
    this.#end?.finish()
  }

  abort(reason: string): void {
    this.#end?.abort(reason)
  }

  resume(): void {
    this.#end?.resume()
  }

  close(reason: string): void {
    this.#end?.close(reason)
  }

  deliver(piece: PayloadContent): boolean {
    const { body } = piece
    if (body.length === 0) return this.#application.deliver(piece)
    if (this.#receiver === null) return this.#onHeader(piece)
    const opened = this.#open(body)
    if (opened === null) return this.#fail('a message of the peer cannot be decrypted')
    return this.#application.deliver({ ...piece, body: opened })
  }

  onFinished(): void {
    this.#application.onFinished()
  }

  onWritable(): void {
    this.#application.onWritable()
  }

  onClosed(reason: string, isWhole: boolean): void {
    this.#application.onClosed(reason, isWhole)
  }

  #onHeader({ body, edgeFlags }: PayloadContent): boolean {
    if (body.length !== sodium.crypto_secretstream_xchacha20poly1305_HEADERBYTES) {
      return this.#fail('the peer does not encrypt')
    }
    this.#receiver = sodium.crypto_secretstream_xchacha20poly1305_init_pull(
      body,
      this.#keys.receiving,
    )
    // FIN in the payload with the header: the peer sends no data.
    if ((edgeFlags & FIN) === 0) return true
    return this.#application.deliver({ body: NONE, edgeFlags, traceId: null })
  }

  #open(body: Uint8Array): Uint8Array | null {
    if (this.#receiver === null) return null
    if (body.length < sodium.crypto_secretstream_xchacha20poly1305_ABYTES) return null
    const pulled = sodium.crypto_secretstream_xchacha20poly1305_pull(this.#receiver, body, null)
    return pulled === false ? null : pulled.message
  }

  #fail(reason: string): boolean {
    this.#end?.abort(reason)
    return true
  }
}
