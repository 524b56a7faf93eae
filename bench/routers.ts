import { encodeFrame, FrameDecoder } from '../src/channel/frame.ts'
import { encodeText } from '../src/channel/headers.ts'
import { modelSourceKinds, modelChanges, wholeModelEvents } from '../src/fsm/router-model/model.ts'
import { encodeModelEvent } from '../src/fabric/model/encode.ts'
import { ModelChangeHistory } from '../src/fabric/model/model-change-history.ts'
import { encodeFullModel } from '../src/fabric/model/model-handler.ts'
import { routerLimits } from '../src/fabric/limits.ts'
import { formedState, service } from '../test/fsm/support/log.ts'
import { bench } from './support/routers.ts'

// Measures the cost of routers for a controller: frames, the full data model of 10,000 identities
// and 1,000 services, and changes of that model. `node bench/routers.ts`; bench/scale-routers.ts
// shows how these costs grow.

const body = new Uint8Array(200).fill(7)
const headers = new Map([
  [1, encodeText('abcd')],
  [1101, encodeText('efgh')],
])
const frame = encodeFrame({ contentType: 1005, sequence: 1, headers, body })
bench('frames encoded', 200_000, (at) => {
  encodeFrame({ contentType: 1005, sequence: at, headers, body })
})
const limits = {
  frameHeadersBytesMax: 65_536,
  frameHeadersMax: 128,
  frameBodyBytesMax: 1_048_576,
}
const decoder = new FrameDecoder(limits)
bench('frames decoded', 200_000, () => {
  decoder.push(frame)
})

const { state, log } = formedState()
for (const kind of modelSourceKinds) state.changes.watch(kind)
for (let at = 0; at < 1000; at += 1) {
  log.create('service', `s${at}`, { ...service(`service ${at}`), roleAttributes: [`g${at % 50}`] })
}
for (let at = 0; at < 50; at += 1) {
  log.create('servicePolicy', `p${at}`, {
    name: `p${at}`,
    type: 'Dial',
    semantic: 'AnyOf',
    identityRoles: [`#i${at}`],
    serviceRoles: [`#g${at}`],
  })
}
const take = () => modelChanges(state, state.changes.take(state.tables))
take()
const changeLog = new ModelChangeHistory(0, routerLimits)
let bytes = 0
const beganMs = performance.now()
for (let at = 0; at < 10_000; at += 1) {
  log.create('identity', `i${at}`, {
    name: `identity ${at}`,
    type: 'Default',
    isAdmin: false,
    roleAttributes: [`i${at % 50}`],
  })
}
const writtenMs = performance.now() - beganMs
const changes = take()
const encodingMs = performance.now()
for (const event of changes) {
  const encoded = encodeModelEvent(event, 0)
  if (encoded !== null) changeLog.add(changeLog.index + 1, [encoded], 'timeline')
}
bytes = changeLog.after(0).reduce((sum, change) => sum + change.bytes.length, 0)
console.log(
  `10,000 identities made: ${Math.round(writtenMs)} ms of apply; ${changes.length} changes of the model, ${(bytes / 2 ** 20).toFixed(2)} MiB, ` +
    `${Math.round(performance.now() - encodingMs)} ms to encode once for all routers`,
)
const wholeMs = performance.now()
const whole = await encodeFullModel({
  events: wholeModelEvents(state),
  keys: [],
  endIndex: 1,
  timelineId: 't',
  nowMs: 0,
})
console.log(
  `the whole model: ${(whole.length / 2 ** 20).toFixed(2)} MiB, ${Math.round(performance.now() - wholeMs)} ms`,
)
