import { create, toBinary } from '@bufbuild/protobuf'

import { CreateFabricCircuitSchema } from '../../../proto/gen/router_pb.ts'
import type { Outgoing } from '../../channel/channel.ts'
import type { ChannelMessage } from '../../channel/frame.ts'
import { readText } from '../../channel/headers.ts'
import { messageBounds } from '../../channel/message-bounds.ts'

const INGRESS_ADDRESS_HEADER = 1100
const REASON_CHARACTERS_MAX = 200

/** @param client the name that it has given itself. */
export function circuitRequest(service: string, client: string): Outgoing {
  const request = create(CreateFabricCircuitSchema, { ingressId: client, service })
  return {
    contentType: messageBounds.fabricCircuit.number,
    body: toBinary(CreateFabricCircuitSchema, request),
  }
}

/** @returns why there is no circuit, as a text. */
export function readFabricCircuitAnswer({
  contentType,
  headers,
  body,
}: ChannelMessage): { readonly id: string; readonly address: string } | string {
  const text = Buffer.from(body).toString('utf8')
  if (contentType !== messageBounds.fabricCircuitCreated.number) {
    return text.replaceAll(/[^\x20-\x7e]+/g, ' ').slice(0, REASON_CHARACTERS_MAX) || 'refused'
  }
  const address = readText(headers, INGRESS_ADDRESS_HEADER)
  if (text === '' || address === null) return 'the controller has answered without a circuit'
  return { id: text, address }
}
