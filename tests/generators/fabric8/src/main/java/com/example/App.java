package com.example;

import io.fabric8.generator.annotation.Required;
import io.fabric8.generator.annotation.ValidationRule;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;

@Group("generators.example.com")
@Version("v1")
public class App extends CustomResource<App.Spec, Void> implements Namespaced {
  public static class Spec {
    @Required
    public Source source;
  }

  @ValidationRule(value = "has(self.git) != has(self.image)", message = "set one of git and image")
  public static class Source {
    public Git git;
    public Image image;
  }

  public static class Git {
    @Required
    public String url;
  }

  public static class Image {
    @Required
    public String ref;
  }
}
