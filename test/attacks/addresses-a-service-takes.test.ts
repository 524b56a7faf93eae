import { expect, test } from 'vitest'

import { allowsNamespaces, runInNamespace } from '../support/network-namespace.ts'

// The attack: who may write a service has it intercept what is not its own at the hosts of those who may dial it, another host uses
// what is open to the programs of this one, or a route outlives its service: in addresses-a-service-takes.namespaced.ts, as these
// change the routes of their host.

test.runIf(allowsNamespaces())('a service intercepts only its own addresses', async () => {
  const file = 'test/attacks/addresses-a-service-takes.namespaced.ts'
  expect(await runInNamespace(file)).toMatch(/Tests +[0-9]+ passed/)
})
