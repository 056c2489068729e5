/** undici has types for its index only. */
declare module 'undici/lib/api/index.js' {
  import type { Dispatcher } from 'undici';

  const api: Pick<Dispatcher, 'request' | 'stream' | 'pipeline' | 'upgrade' | 'connect'>;
  export default api;
}

declare module 'undici/lib/dispatcher/agent.js' {
  import { Agent } from 'undici';
  export default Agent;
}

declare module 'undici/lib/dispatcher/dispatcher.js' {
  import { Dispatcher } from 'undici';
  export default Dispatcher;
}

declare module 'undici/lib/dispatcher/proxy-agent.js' {
  import { ProxyAgent } from 'undici';
  export default ProxyAgent;
}

declare module 'undici/lib/dispatcher/socks5-proxy-agent.js' {
  import { Socks5ProxyAgent } from 'undici';
  export default Socks5ProxyAgent;
}
