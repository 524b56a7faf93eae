import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { freePort } from '../support/ports.ts'
import { StockNetwork } from './network.ts'
import { OurRouter } from './our-router.ts'
import { seen } from './stock-router.ts'

// An unmodified OpenZiti router and one of our routers establish a link. `node test/stock/links.ts
// --binary PATH`

const { values: options } = parseArgs({ options: { binary: { type: 'string' } } })
const { binary } = options
if (binary === undefined || !existsSync(binary)) {
  console.log('skipped: --binary names no program of the router family, so there is nothing to try')
  process.exit(0)
}
await using network = await StockNetwork.start(binary, ['er1'])
const id = await network.post('edge-routers', { name: 'ours' })
const { enrollmentJwt } = await network.detail(1, `edge-routers/${id}`)
const ours = new OurRouter({
  folder: join(network.cluster.folder, 'ours'),
  endpoint: network.routers[0]?.options.endpoint ?? '',
  linkPort: await freePort(),
})
await ours.enroll(String(enrollmentJwt))
ours.start()
try {
  network.routerIds.push(id)
  for (const k of [1, 2, 3]) {
    await seen(`both routers online on ctrl${k}`, () => network.areOnline(k))
    await seen(`a link of the two on ctrl${k}`, async () => {
      const links = await network.fabric(k, 'links')
      return links.some(({ state }) => state === 'Connected')
    })
  }
  const [link] = await network.fabric(1, 'links')
  console.log(`  ${JSON.stringify(link).slice(0, 500)}`)
  await network.client(1).request('DELETE', `/fabric/v1/links/${String(link?.['id'])}`)
  await seen('another link after an operator has removed that one', async () => {
    const links = await network.fabric(1, 'links')
    return links.some((each) => each['state'] === 'Connected' && each['id'] !== undefined)
  })
  console.log('all seen')
} catch (error) {
  console.log((await ours.logText()).split('\n').slice(-30).join('\n'))
  console.log(network.routers[0]?.logText().split('\n').slice(-15).join('\n'))
  throw error
} finally {
  await ours.kill()
}
