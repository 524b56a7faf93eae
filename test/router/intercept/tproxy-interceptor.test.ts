import { expect, test } from 'vitest'

import { allowsNamespaces, runInNamespace } from '../../support/network-namespace.ts'

// Goal: programs on a host reach services by their addresses and names, and nothing remains when a
// service is removed. Method: runs the tests of tproxy-interceptor.namespaced.ts in a separate
// process, because they change the routes of their host.

test.runIf(allowsNamespaces())(
  'a tunneler intercepts services (this test runs other tests in a separate network namespace)',
  async () => {
    const file = 'test/router/intercept/tproxy-interceptor.namespaced.ts'
    expect(await runInNamespace(file)).toMatch(/Tests +[0-9]+ passed/)
  },
)
